"""Environment families, one package each: world, tools, tasks, references and documentation."""
