/** Returns an object whose members are created at their first use. */
export function lazily<Members extends Readonly<Record<string, () => unknown>>>(
  members: Members,
): { readonly [Name in keyof Members]: ReturnType<Members[Name]> } {
  const made = {};
  for (const [name, make] of Object.entries(members)) {
    Object.defineProperty(made, name, {
      configurable: true,
      enumerable: true,
      get: () => {
        const value = make();
        Object.defineProperty(made, name, { value, enumerable: true });
        return value;
      },
    });
  }
  return made as { readonly [Name in keyof Members]: ReturnType<Members[Name]> };
}
