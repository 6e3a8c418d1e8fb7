"""Trees grown by XGBoost: the engine, its data, its fitted ensembles."""
