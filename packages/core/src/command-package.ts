/** This package holds the command line. An unscoped name, if one becomes free, replaces the scoped name here. */
export const commandPackage = "@throughline/cli";
