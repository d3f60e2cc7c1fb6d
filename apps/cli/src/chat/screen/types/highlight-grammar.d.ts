declare const grammar: (api: object) => object;
// oxlint-disable-next-line import/no-default-export -- the library has one
export { grammar as default };
