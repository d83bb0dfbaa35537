"""What several other programs have in their protocols, and what they lack. Pure.

Public: missing_features (why_unavailable, find_unsupported), websocket_frames (FrameWalker, heads of messages).
"""
