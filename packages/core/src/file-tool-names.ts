/** Agents use these names, in lower case, for the tools that write files. */
export const writeToolNames: readonly string[] = [
  "write",
  "edit",
  "multi_edit",
  "multiedit",
  "create",
  "create_file",
  "write_file",
  "edit_file",
  "str_replace",
  "str_replace_based_edit_tool",
  "apply_patch",
  "notebookedit",
];

/** File tools use these argument names for the path; the most usual name comes first. */
export const pathArgumentNames: readonly string[] = [
  "path",
  "file_path",
  "filePath",
  "file",
  "filename",
  "notebook_path",
];
