"""One model behind one interface: processor, policy, rollout engine."""
