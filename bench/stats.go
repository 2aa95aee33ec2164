// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// quantile returns the quantile q of the values, or 0 if there are no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	low := int(at)
	high := min(low+1, len(s)-1)
	return s[low] + (at-float64(low))*(s[high]-s[low])
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// medianError returns the standard error of the median. It is computed from the median deviation, so a few disturbed
// values do not change it.
func medianError(values []float64) float64 {
	m := median(values)
	deviations := make([]float64, len(values))
	for i, v := range values {
		deviations[i] = math.Abs(v - m)
	}
	const normal, ofMedian = 1.4826, 1.2533
	return ofMedian * normal * median(deviations) / math.Sqrt(float64(max(1, len(values))))
}

// each calls value for each element of all, and returns the results.
func each[T any](all []T, value func(T) float64) (values []float64) {
	for _, v := range all {
		values = append(values, value(v))
	}
	return values
}
