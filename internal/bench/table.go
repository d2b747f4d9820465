package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one line of the table.
type row struct {
	what   string
	figure string
	budget string // empty: not judged
	over   bool
}

// judged returns a row with a budget in the figure's unit.
func judged(what string, figure, budget float64, unit string) row {
	write := number
	if unit == times {
		write = ratio
	}
	return row{what: what, figure: write(figure) + unit, budget: "<= " + write(budget) + unit, over: figure > budget}
}

// times is the unit of ratios.
const times = "x"

func ratio(v float64) string { return fmt.Sprintf("%.2f", v) }

// shown returns a row without a budget.
func shown(what, format string, args ...any) row {
	return row{what: what, figure: fmt.Sprintf(format, args...)}
}

func number(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (r row) verdict() string {
	switch {
	case r.budget == "":
		return ""
	case r.over:
		return "OVER"
	}
	return "ok"
}

// show prints the table.
func show(out io.Writer, head string, rows []row) {
	fmt.Fprintln(out, head)
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tFIGURE\tBUDGET\tVERDICT")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.figure, r.budget, r.verdict())
	}
	_ = w.Flush() // a reader that has exited misses the table
}

// machine describes the machine, and warns if others use it: then all times are too high, and only
// ratios are reliable.
func machine(o options) string {
	text := fmt.Sprintf("Machine: %d cores, %s, %s/%s; medians of %d rounds, parallelism %d.", runtime.NumCPU(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH, o.rounds, parallelism)
	if load, ok := loaded(); ok {
		text += fmt.Sprintf("\nThe load was %.1f before the start: others use this machine, so times are too high.", load)
	}
	return text
}

// busy is the load per core above which times are not reliable.
const busy = 0.5

// loaded returns the load of the last minute if it is above busy. Only Linux reports it.
func loaded() (float64, bool) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	return load, err == nil && load > busy*float64(runtime.NumCPU())
}

// median returns the middle value, or the mean of the two in the middle.
func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
