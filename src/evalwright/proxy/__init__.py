"""A local endpoint in the shapes of OpenAI and Anthropic, in front of any model of ours.

`sessions` says what a request's identity is, `gateway` what happens to one request, `server` what
a connection may do, `serving` how all of it is started and ended. The files `*_format` are pure:
JSON to requests, responses to JSON and to the events of a stream.
"""
