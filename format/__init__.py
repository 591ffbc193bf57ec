"""What a package is: container, manifest, function types, the VIS rules, signatures."""
