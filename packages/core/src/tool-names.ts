import { providerLimits, type LimitedApi, type NameLimit } from "./provider-limits.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** Returns the rule of a wire shape. An unknown shape gets the rule that all providers accept. */
function toolNameRule(api: string): NameLimit {
  return Object.hasOwn(providerLimits, api)
    ? providerLimits[api as LimitedApi].toolName
    : providerLimits.openai.toolName;
}

/**
 * Returns the name of a tool for a provider: unchanged when the provider accepts the name, else always the same
 * replacement. The list of tools and the calls of a history both use this function, so that their names agree.
 */
export function wireToolName(name: string, { forbidden, maxLength, first }: Omit<NameLimit, "allowed">): string {
  const plain = name.trim().replace(forbidden, "_") || "unnamed_tool";
  const begun = first === undefined || first.test(plain) ? plain : `_${plain}`;
  if (begun.length <= maxLength) return begun;
  // Two long names may differ only in the part that is cut off, so a hash keeps them distinct.
  const hash = shortHash(name);
  return `${begun.slice(0, maxLength - hash.length - 1)}_${hash}`;
}

/** The hash is FNV-1a in base 36, which gives seven characters that are the same in every process. */
function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(36).padStart(7, "0");
}

/**
 * Maps the names that a provider gets to the names of the tools.
 * @throws {ThroughlineError} INPUT_INVALID when two tools would have the same
 */
export function toolsByWireName(names: readonly string[], api: string): ReadonlyMap<string, string> {
  const rule = toolNameRule(api);
  const byWireName = new Map<string, string>();
  for (const name of names) {
    const wire = wireToolName(name, rule);
    const other = byWireName.get(wire);
    if (other !== undefined) {
      const [one, two] = [JSON.stringify(other), JSON.stringify(name)];
      const message = `The tools ${one} and ${two} would both be called ${JSON.stringify(wire)} by the provider.`;
      throw new ThroughlineError("INPUT_INVALID", message, {
        details: { tools: [other, name], wireName: wire },
        remedy: "Rename or leave out one of the two tools.",
      });
    }
    byWireName.set(wire, name);
  }
  return byWireName;
}
