"""The numbers of a policer or shaper: what one burst shows, and the result of many, for people and for programs."""
