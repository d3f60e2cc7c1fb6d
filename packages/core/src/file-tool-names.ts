/** What agents call the tools that write files, in lower case. */
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

/** What the arguments of file tools call the path, most usual first. */
export const pathArgumentNames: readonly string[] = [
  "path",
  "file_path",
  "filePath",
  "file",
  "filename",
  "notebook_path",
];
