"""What public functions refuse: one module of checks per module of the library, one check per public function."""
