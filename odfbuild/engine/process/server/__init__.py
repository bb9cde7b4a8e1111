"""The built-in Spark as an engine for any coordinator: `odfbuild engine serve`."""
