/** The package that holds the command line. An unscoped name, should one be free, takes its place here. */
export const commandPackage = "@throughline/cli";
