"""The records that an audit reads: inputs, outputs, and the marks on rows."""
