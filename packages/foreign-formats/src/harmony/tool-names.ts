/** Tools of the model's own, which need no namespace of functions. */
const ownTools = /^(?:python|browser\.[a-z_]{1,32}|container\.[a-z_]{1,32})$/;

const functions = "functions.";

/** The name of a tool, by whom a message is to or from. */
export function toolOf(recipient: string): string {
  const name = recipient.startsWith(functions) ? recipient.slice(functions.length) : recipient;
  return name === "" || ownTools.test(name) ? recipient : name;
}

/** Whom a call of a tool is to, and its result from: what `toolOf` makes the same name of. */
export function recipientOf(tool: string): string {
  return toolOf(tool) === tool && (ownTools.test(tool) || tool.startsWith(functions)) ? tool : `${functions}${tool}`;
}
