/** The model has these tools built in, so they need no namespace of functions. */
const ownTools = /^(?:python|browser\.[a-z_]{1,32}|container\.[a-z_]{1,32})$/;

const functions = "functions.";

/** The sender or the recipient of a message names the tool, possibly with a namespace. */
export function toolOf(recipient: string): string {
  const name = recipient.startsWith(functions) ? recipient.slice(functions.length) : recipient;
  return name === "" || ownTools.test(name) ? recipient : name;
}

/**
 * Returns the recipient of a call, which is also the sender of its result. `toolOf` maps the recipient back to the
 * tool.
 */
export function recipientOf(tool: string): string {
  return toolOf(tool) === tool && (ownTools.test(tool) || tool.startsWith(functions)) ? tool : `${functions}${tool}`;
}
