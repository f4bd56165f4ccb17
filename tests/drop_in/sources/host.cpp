int helper() { return 3; }
