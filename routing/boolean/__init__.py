"""Boolean subscriptions: filters as trees of predicates, matched and pruned as they are."""
