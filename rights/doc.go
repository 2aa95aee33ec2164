// SPDX-License-Identifier: Apache-2.0

// Package rights says what a policy says about the use of content by AI and search,
// in the terms of the registers in which publishers state their rights. The usages are
// those of the AIPREF vocabulary: train-ai, ai-use and search.
//
// Some registers speak to one crawler (the groups of robots.txt); Finder answers for
// these. Others speak to everyone at once (TDMRep, RSL, usage tokens, control tokens
// but for their name). They cannot exempt a crawler, so that what is disallowed for
// any crawler, purpose or identity is disallowed there: View answers for these.
package rights
