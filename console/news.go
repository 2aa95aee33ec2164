// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/http"
	"time"
)

// update holds values that an open page compares with the values that it shows.
type update struct {
	Requests int64  `json:"requests"` // number of requests today
	Policy   string `json:"policy"`   // the version in force
	Alerts   int    `json:"alerts"`
}

// newsJSON returns an update to open pages, which request it periodically.
func newsJSON(w http.ResponseWriter, v *view) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v.update())
}

func (v *view) update() (u update) {
	if v.Running != nil {
		u.Policy = v.Running.Version()
	}
	if v.store == nil {
		return u
	}
	u.Alerts, _ = v.count(func(*notice) bool { return true })
	q := v.query()
	q.From = v.Now.Truncate(24 * time.Hour)
	q.To = q.From.AddDate(0, 0, 1)
	if rows, err := v.totals(q); err == nil && len(rows) > 0 {
		u.Requests = rows[0].Requests
	}
	return u
}
