/** The package that holds the command line. An unscoped name, should one be free, takes its place here. */
export const commandPackage = "@throughline/cli";

/** Installs the command line again where it is installed for the whole machine. */
export const reinstallCommand: string = `npm install --global ${commandPackage}`;
