"""What stands beside the Transformer: what came before it, faster attention, scaling laws, a pre-trained model."""
