"""What a proxy costs: forge's beside a bare pass-through and beside the least that Python can do, in one run."""
