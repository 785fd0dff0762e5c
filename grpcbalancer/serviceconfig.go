package grpcbalancer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/config"
)

// ServiceConfig returns the service config that chooses the policy "evenkeel" with c, for
// grpc.WithDefaultServiceConfig:
//
//	sc, err := grpcbalancer.ServiceConfig(evenkeel.Config{Policy: picker.P2C{Choices: 3}})
//	...
//	grpc.NewClient(target, grpc.WithDefaultServiceConfig(sc), ...)
//
// It is one object with the member "loadBalancingConfig" alone, in one line, and the same for equal
// configs. The error says all that is wrong with c. A policy or a signal of your own has no JSON form,
// which is an error too: [Register] is for those.
func ServiceConfig(c evenkeel.Config) (string, error) {
	if err := errors.Join(c.Validate(), checkKeys(c.Keys), checkHealth(c.Health)); err != nil {
		return "", fmt.Errorf("grpcbalancer: %w", err)
	}
	own, err := config.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("grpcbalancer: %w", err)
	}
	type policy map[string]json.RawMessage
	whole, err := json.Marshal(map[string][]policy{"loadBalancingConfig": {{Name: own}}})
	if err != nil {
		return "", fmt.Errorf("grpcbalancer: %w", err)
	}
	return string(whole), nil
}
