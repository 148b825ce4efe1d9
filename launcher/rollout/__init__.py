"""How a service is changed while it takes requests: what serves, who may move when, and in which order."""
