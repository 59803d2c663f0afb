/** @file Simplified Chinese. The left side is the text in the code; a test holds both against one another. */
export default {};
