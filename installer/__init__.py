"""What happens on arrival: target detection, plan, compiling, linking, gates, answer check."""
