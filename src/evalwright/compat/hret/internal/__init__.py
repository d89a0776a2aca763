"""Tables that HRET keeps for itself."""
