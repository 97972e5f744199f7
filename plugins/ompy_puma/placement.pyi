# Nothing for Python: this module is cimported only.
