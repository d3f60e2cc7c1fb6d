import { providerLimits, type LimitedApi, type NameLimit } from "./provider-limits.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** The rule of a wire shape. One that is not known takes what all take. */
export function toolNameRule(api: string): NameLimit {
  return Object.hasOwn(providerLimits, api)
    ? providerLimits[api as LimitedApi].toolName
    : providerLimits.openai.toolName;
}

/**
 * The name of a tool as a provider gets it: the same where the provider takes it, and else always the same other one. The
 * list of tools and the calls of a history both have it from here.
 */
export function wireToolName(name: string, { forbidden, maxLength, first }: Omit<NameLimit, "allowed">): string {
  const plain = name.trim().replace(forbidden, "_") || "unnamed_tool";
  const begun = first === undefined || first.test(plain) ? plain : `_${plain}`;
  if (begun.length <= maxLength) return begun;
  // What is cut off would be all that tells two long names apart.
  const hash = shortHash(name);
  return `${begun.slice(0, maxLength - hash.length - 1)}_${hash}`;
}

/** FNV-1a in base 36. */
function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(36).padStart(7, "0");
}

/**
 * The names of tools by those that a provider gets.
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
