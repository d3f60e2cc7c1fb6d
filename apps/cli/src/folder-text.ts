/** A folder as people write it: `~/src/app` where it lies in the user's home. */
export function folderText(folder: string, userHome: string): string {
  if (userHome === "" || userHome === "/") return folder;
  if (folder === userHome) return "~";
  return folder.startsWith(`${userHome}/`) ? `~${folder.slice(userHome.length)}` : folder;
}
