"""The command lines. They read arguments, call the library and print; they hold nothing a Python caller would miss."""
