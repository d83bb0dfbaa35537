"""The apps of the cockpit, an endpoint, a mesh and a watch: `app`, and the settings of the user."""
