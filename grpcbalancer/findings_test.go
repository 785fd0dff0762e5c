package grpcbalancer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// faults are what other policies of gRPC's have wrong, or had, and users suffer from, each with the tests
// that show it is not so here.
var faults = []struct {
	fault string
	tests []string
}{
	// Measured in grpc-go.
	{"coming up costs O(n²), since each change of a child rebuilds everything", []string{
		"TestTenThousandEndpointsComeUpInFewPublications", "TestFirstReadyEndpointsArePublishedAtOnceLaterOnesTogether",
		"TestOneChangeAmongTenThousandTouchesOneChild", "TestUpdateThatChangesNothingDoesNothing"}},
	{"ejected endpoints that leave the list use up the budget of ejections for ever", []string{"TestEjectedEndpointsThatLeaveGiveTheirPlaceBack"}},
	{"ejection by a parent does nothing without the health listener", []string{"TestFailedHealthCheckTakesOutAnEndpoint", "TestClientSideHealthChecks"}},
	{"configs are lost when a parent marshals them", []string{
		"TestConfigSurvivesBeingMarshalledAndParsed", "TestConfigReachesTheChildOfAParent", "TestServiceConfigComesBackTheSame", "TestConfigsAreTheSameBelowEachParent"}},
	{"requests in flight are forgotten by a reconnect", []string{
		"TestReconnectWithFiftyStreamsShiftsNoPick", "TestStreamStaysCountedOverAReconnect", "TestBug2_ConnectionThatComesBackChangesNoRecord"}},
	{"an endpoint is compared with itself", []string{"TestOfTwoEndpointsTheIdleOneIsAlwaysPicked"}},
	{"an idle endpoint's report takes the traffic and slows picks down", []string{
		"TestEndpointReportingUtilization0_001StaysWithinTheClamp", "TestHostileReportsStayWithinTheClamp",
		"TestFeedbackGivesServersTheSharesThatTheyCanTake"}},
	{"a ring leaves endpoints without traffic", []string{"TestHashingLeavesNoEndpointOut"}},
	{"a connection that is gone delays calls until the next picker", []string{
		"TestPublishingLeftReadyNeverDelaysACall", "TestCallsOverConnectionsJustLostTakeNoTime", "TestLeavingReadyIsPublishedAtOnceWithAllThatWaits", "TestLostConnectionIsLeftAtOnceAndMadeAgain"}},
	{"a pick that became no call counts as a success, and a report that is a typed nil as a report", []string{
		"TestResultOfAnAttempt", "TestReportsAllocateNothing"}},
	{"gRPC's experimental API breaks its users twice a year", []string{"TestOneFileTouchesGRPCsExperimentalPackages"}},

	// Reported by users of gRPC and of other balancers.
	{"children stay idle when hundreds of connections age out", []string{
		"TestFiveHundredEndpointsThatFlapAreAllReadyAgain", "TestConnectionsThatAgeFailNoCall", "TestExitIdleConnectsIdleChildren"}},
	{"a resolver error panics", []string{"TestEveryCallInEveryPhase", "TestResolverErrorWithoutAList", "TestResolverErrorWhileServingChangesNothing",
		"TestPolicyUnderAnyOrderOfEvents"}},
	{"pickers race with updates", []string{"TestUpdatesUnderConcurrentPicks", "TestEverythingAtOnceOverAChannel", "TestPolicyUnderAnyOrderOfEventsWhileCallsAreMade"}},
	{"each picker leaves a ticker behind", []string{"TestMain", "TestBug57_OpenedAndClosedAThousandTimes", "TestBug60_ListsThatGoEmptyAndComeBackLeaveNothing"}},
	{"ejection needs xDS", []string{"TestEjectedEndpointsThatLeaveGiveTheirPlaceBack"}},
	{"weights of the control plane are out of reach", []string{"TestWeightIsReadOnEachUpdate"}},
	{"callers that leave make an endpoint look bad", []string{"TestWhatCancelledAndTimedOutCallsTeach", "TestWhoLeftIsTheContextsWord"}},
	{"a backend that fails fast attracts calls", []string{"TestBackendThatFailsFastGainsNothing"}},
	{"one hang takes all calls down", []string{"TestBackendThatHangsHoldsFewCalls"}},
	{"fast and slow endpoints share evenly", []string{"TestSlowEndpointGetsFewOfTheCalls"}},
	{"too many connections, n clients times m servers", []string{"TestOnlySelectedEndpointsHaveConnections"}},
	{"a new endpoint wins every comparison", []string{"TestNewEndpointIsNotFlooded", "TestEveryEndpointIsTriedThoughFirstAnswersAreSlow"}},
	{"long streams pile up where nobody counts them", []string{"TestStreamStaysCountedOverAReconnect", "TestDurationOfAStreamIsNoLatency"}},
	{"health checks are off without a word", []string{"TestServersWithoutTheServiceAreHealthyWithOneWarning"}},
	{"waiting for a stream counts as the server's latency", []string{"TestWaitingForAStreamBlamesNobody", "TestCallsWaitForStreamsAndGetThem"}},
	{"a stream that crosses a GOAWAY, or is refused, is its server's failure", []string{
		"TestStreamsThatNoServerProcessedAreNoFailures", "TestGracefulRestartsFailNoCallWithoutRetries", "TestConnectionsThatAgeFailNoCallWithoutRetries"}},
	{"what a caller has wrong takes endpoints out", []string{"TestCallsThatNeverLeftTheClientBlameNobody", "TestMessagesBeyondALimitBlameNobody"}},
	{"an upload that fails early is a quick success, since gRPC tells of no error", []string{"TestUploadsThatFailEarlyAreNoQuickSuccesses"}},
	{"an endpoint of two address families is two, or is lost with one of them", []string{"TestEndpointsOfTwoFamiliesAreOneByEitherAddress"}},
	{"errors say nothing of the reason", []string{"TestFailureRotatesOverTheErrorsOfTheEndpoints", "TestStatsTellWhyConnectionsFail"}},
	{"a field of the config is mixed up with another", []string{
		"TestT26ConfigOfJSONReachesThePool", "TestEveryFieldOfTheConfigCanBeOverridden", "TestServiceConfigComesBackTheSame"}},
	{"retries go where the call just failed", []string{
		"TestAttemptsOfOneCallGoToEachEndpointBeforeOneTwice", "TestRetriesOfRealCallsFindTheServerThatWorks"}},
	{"all that was learnt is lost when the channel idles", []string{
		"TestWhatWasLearntOutlastsThePolicy", "TestWhatIsKnownSurvivesIdlenessAndOtherPolicies"}},
}

func TestEachKnownFaultHasItsTests(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				there[f.Name.Name] = true
			}
		}
	}
	for _, f := range faults {
		if len(f.tests) == 0 {
			t.Errorf("%s: no test", f.fault)
		}
		for _, name := range f.tests {
			if !there[name] {
				t.Errorf("%s: there is no %s", f.fault, name)
			}
		}
	}
}
