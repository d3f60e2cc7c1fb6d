/** What of a JSON Schema is looked at before a tool runs: types, required and unknown fields, enumerations, elements. */
interface ArgumentSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, ArgumentSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: ArgumentSchema;
  readonly enum?: readonly unknown[];
}

/** Why arguments do not fit a tool's schema, for the model to read; null when they do. */
export function argumentProblem(value: unknown, schema: Readonly<Record<string, unknown>>): string | null {
  return problemAt("arguments", value, { type: "object", ...schema });
}

function problemAt(place: string, value: unknown, schema: ArgumentSchema): string | null {
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOfType(value, type)))
    return `${place} must be ${types.join(" or ")}, not ${typeName(value)}`;
  if (schema.enum !== undefined && !schema.enum.some((allowed) => JSON.stringify(allowed) === JSON.stringify(value)))
    return `${place} must be one of ${JSON.stringify(schema.enum)}`;
  if (Array.isArray(value))
    return firstProblem(value.entries(), ([at, item]) => elementProblem(place, at, item, schema));
  return typeof value === "object" && value !== null ? fieldsProblem(place, value, schema) : null;
}

function elementProblem(place: string, at: number, item: unknown, { items }: ArgumentSchema): string | null {
  return items === undefined ? null : problemAt(`${place}[${at}]`, item, items);
}

function fieldsProblem(place: string, value: object, schema: ArgumentSchema): string | null {
  const { properties = {}, required = [] } = schema;
  const missing = required.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `${place}.${missing} is missing`;
  return firstProblem(Object.entries(value), ([name, field]) => {
    if (Object.hasOwn(properties, name))
      return problemAt(`${place}.${name}`, field, properties[name] as ArgumentSchema);
    return schema.additionalProperties === false ? `${place}.${name} is not an argument` : null;
  });
}

function firstProblem<Item>(items: Iterable<Item>, problemOf: (item: Item) => string | null): string | null {
  for (const item of items) {
    const problem = problemOf(item);
    if (problem !== null) return problem;
  }
  return null;
}

function isOfType(value: unknown, type: string): boolean {
  const actual = typeName(value);
  if (type === "number") return actual === "number" || actual === "integer";
  return actual === type || !["object", "array", "string", "boolean", "null", "integer"].includes(type);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}
