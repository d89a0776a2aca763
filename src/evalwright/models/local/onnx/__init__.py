"""Models in ONNX files, run by onnxruntime."""
