package orcagrpc_test

import (
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// A server that reports on every response and out of band, with the processor's utilization where
// there is a control group of version 2.
func ExampleServer() {
	config := orca.TrackerConfig{}
	if cpu, err := orca.NewCgroupCPU(os.DirFS("/")); err == nil {
		config.CPU = cpu.Read
	}
	reporter := &orcagrpc.Server{Tracker: orca.NewTracker(config)}
	s := grpc.NewServer(reporter.Options()...)
	outOfBand := orcagrpc.NewService(orcagrpc.ServiceConfig{Tracker: reporter.Tracker})
	outOfBand.Register(s)

	outOfBand.Close() // before GracefulStop, which waits for its streams
	s.GracefulStop()
	for name := range s.GetServiceInfo() {
		fmt.Println(name)
	}
	// Output: xds.service.orca.v3.OpenRcaService
}

// What a client finds in the trailer of a call.
func ExampleParseTrailer() {
	sent := orca.Report{QPS: 120, CPU: 0.5, Named: orca.Metrics{{Name: "rif", Value: 4}}}
	message, _ := sent.AppendBinary(nil)

	var r orca.Report
	found, err := orcagrpc.ParseTrailer(&r, metadata.Pairs(orcagrpc.TrailerKey, string(message)))
	fmt.Println(found, err, r.QPS, r.CPU, r.Named)
	// Output: true <nil> 120 0.5 [{rif 4}]
}
