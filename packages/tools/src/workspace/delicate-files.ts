/** A change of these files makes other programs run something, or opens access. Names are compared without case. */
const folders: ReadonlySet<string> = new Set([".git", ".github", ".vscode", ".husky"]);
const files: ReadonlySet<string> = new Set([
  "package.json",
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".profile",
  ".zshrc",
  ".zshenv",
  ".zprofile",
  ".zlogin",
  ".zlogout",
  ".kshrc",
  ".cshrc",
  ".tcshrc",
  ".login",
  "config.fish",
]);
const beginnings: readonly string[] = [".env", "id_"];
const endings: readonly string[] = [".pem", ".key"];

/** Returns true for a file that a person decides on each time. @param names the names from the workspace */
export function isDelicateFile(names: readonly string[]): boolean {
  const lower = names.map((name) => name.toLowerCase());
  const file = lower.at(-1) ?? "";
  return (
    lower.slice(0, -1).some((name) => folders.has(name)) ||
    files.has(file) ||
    beginnings.some((start) => file.startsWith(start)) ||
    endings.some((end) => file.endsWith(end))
  );
}
