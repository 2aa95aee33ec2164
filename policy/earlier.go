// SPDX-License-Identifier: Apache-2.0

package policy

// EarlierLabel is how drafts of the AIPREF vocabulary before
// draft-ietf-aipref-vocab-08 wrote a usage, where they had another label for much the
// same; or "".
func (u Usage) EarlierLabel() string {
	switch u { //nolint:exhaustive // the others have none
	case TrainAI:
		return "train-genai" // "Generative AI Training" in -02 and -03; train-ai was wider then
	case AIUse:
		return "ai-output" // "AI Output" in -04; ai-use in -02 and again in -08
	}
	return ""
}

// RenamedUsage returns the usage that a label of an earlier draft now stands for.
func RenamedUsage(label string) (Usage, bool) {
	for _, u := range RightsUsages() {
		if label != "" && u.EarlierLabel() == label {
			return u, true
		}
	}
	return 0, false
}
