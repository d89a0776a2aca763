"""Models run by transformers on a CPU or a GPU: `hf/<hub repository or local folder>[@revision]`.

`model` is what the registry opens; `source` finds the files and identifies them by content; both
are light. The rest needs torch and is imported when the model loads: `loading`, `prompts`,
`scoring` with `batching`, `generation`, and `seq2seq` for encoder-decoder models; `engine` combines
them. `adapters`, `placement` and `quantisation` each check one group of arguments and prepare it
for the loader.
"""
