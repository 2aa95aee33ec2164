// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/http"
	"time"
)

// update is compared by an open page with what it shows.
type update struct {
	Requests int64  `json:"requests"` // today
	Policy   string `json:"policy"`   // the version in force
	Alerts   int    `json:"alerts"`
}

// newsJSON answers open pages, which ask now and then.
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
