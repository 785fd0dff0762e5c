package evenkeel

import "slices"

// newWarnings brings the warnings up to date and returns those that are new. mu is held.
func (p *Pool[T]) newWarnings() (news []string) {
	before := p.warnings
	p.warnings = nil
	if p.selector != nil {
		p.warnings = p.selector.Warnings()
	}
	if w := p.config.idleReports(); w != "" {
		p.warnings = append(slices.Clip(p.warnings), w)
	}
	if p.onWarning == nil {
		return nil
	}
	for _, w := range p.warnings {
		if !slices.Contains(before, w) {
			news = append(news, w)
		}
	}
	return news
}

// tell hands warnings to the caller's hook. mu is not held.
func (p *Pool[T]) tell(news []string) {
	for _, w := range news {
		p.onWarning(w)
	}
}
