"""Models run by transformers on a CPU or a GPU: `hf/<hub repository or local folder>[@revision]`.

`transformers_model` is what the registry opens; `source` knows where the files lie and names them
by content; both are light. The rest needs torch and is imported when the model loads: `loading`,
`prompts`, `scoring` with `batching`, `generation`, and `seq2seq` for encoder-decoder models;
`engine` puts them to work. `adapters`, `placement` and `quantisation` each check one group of
arguments and hand the loader what it needs.
"""
