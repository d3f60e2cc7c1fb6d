/** Matches the characters of paths, and of address parts that resemble paths. `pathIn` sorts them out. */
const runPattern = /[\w@:/.~+-]+/g;
const longestRun = 400;
const fileEnding =
  /^(?:[cm]?[jt]sx?|json5?|jsonl|md|py|go|rs|java|kt|rb|php|c|h|cpp|hpp|cs|swift|sh|sql|ya?ml|toml|ini|env|html?|css|scss|vue|svelte|lock|txt|csv|xml|log)$/;
const namePattern =
  /(?<![\w.-])(?:[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[A-Z][a-z0-9]+[A-Z][A-Za-z0-9]*|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|[A-Za-z_]\w{2,}(?=\(\)))(?![\w-])/g;
const identifierPatterns: readonly RegExp[] = [
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi,
  /https?:\/\/[^\s"'`<>)\]}]+[\w/]/g,
  /\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b/g,
  /\bv?\d+\.\d+\.\d+(?:-[\w.]+)?\b/g,
  /\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b/g,
  /(?<![\w&])#\d{1,6}\b/g,
  /\b[A-Z][A-Z0-9]+-\d{1,6}\b/g,
];
const quotedPattern = /"([^"\n]{2,60})"|(?<![\w])'([^'\n]{2,60})'(?!\w)|`([^`\n]{2,60})`/g;
const constraintPattern =
  /\b(?:must(?: not|n't)?|never|always|do not|don't|dont|should(?: not|n't)|make sure|only (?:use|want|do)|no need|instead of|without|prefer|avoid|keep (?:in mind|the)|remember|not allowed|have to|need to be|at (?:most|least))\b/i;

/** Finds paths with at least one folder or a common file ending. A trailing full stop or line number is dropped. */
export function findPaths(text: string): readonly string[] {
  return [...text.matchAll(runPattern)].flatMap(([run]) => {
    const path = pathIn(run);
    return path !== null && isPath(path) ? [path] : [];
  });
}

function pathIn(run: string): string | null {
  if (run.length > longestRun) return null;
  const body = /^~?[\w@.+/-]+/.exec(run.startsWith("@") ? run.slice(1) : run)?.[0] ?? "";
  return body.includes("/") ? pathWithFolder(body) : fileNameIn(body);
}

function pathWithFolder(body: string): string | null {
  let end = body.length;
  while (/[@.-]/.test(body[end - 1] ?? "")) end -= 1;
  const path = body.slice(0, end);
  const parts = path.replace(/^~?\//, "").split("/");
  return parts.length < 2 && !path.startsWith("~/") ? null : parts.includes("") ? null : path;
}

function fileNameIn(body: string): string | null {
  const parts = body.split(".");
  const wrong = parts.findIndex((part) => !/^[\w-]+$/.test(part));
  const last = parts.findLastIndex((part, at) => at > 0 && (wrong === -1 || at < wrong) && fileEnding.test(part));
  return last === -1 ? null : parts.slice(0, last + 1).join(".");
}

/** Rejects versions, fractions and starts of addresses, because these match the path pattern too. */
function isPath(path: string): boolean {
  return path.length <= 160 && /[A-Za-z]/.test(path) && !/^\d|^\/\/|^www\./.test(path);
}

export function findNames(text: string): readonly string[] {
  return [...text.matchAll(namePattern)].map(([name]) => name).filter((name) => name.length <= 60);
}

export function findIdentifiers(text: string): readonly string[] {
  return identifierPatterns.flatMap((pattern) => text.match(pattern) ?? []).filter(({ length }) => length <= 160);
}

export function findQuoted(text: string): readonly string[] {
  return [...text.matchAll(quotedPattern)].map((match) => (match[1] ?? match[2] ?? match[3] ?? "").trim());
}

export function findConstraints(text: string): readonly string[] {
  return text
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.length >= 8 && sentence.length <= 240 && constraintPattern.test(sentence));
}
