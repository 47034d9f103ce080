// The server's side of the tracker, as its jobs see it: work goes out, results
// and news of the fleet come in. The gRPC client implements it; tests replace
// it by a simulated fleet.
//
// Thread safety: all methods may be called from any thread; the listener is
// called from one thread.
#ifndef REGATTA_SERVER_JOB_DISPATCHER_H_
#define REGATTA_SERVER_JOB_DISPATCHER_H_

#include <string>
#include <vector>

#include "regatta/v1/dispatch_service.pb.h"

namespace regatta {

class Dispatcher {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // The stream to the tracker stands (again). Everything still wanted must be
    // submitted again; work that the tracker holds is not run twice for it.
    virtual void OnAttached(const v1::Attached& attached) = 0;
    virtual void OnDetached() = 0;
    virtual void OnResults(std::vector<v1::TrialResult> results) = 0;
    virtual void OnFleetChange(const v1::FleetChange& change) = 0;
    virtual void OnWaitReport(const v1::WaitReport& report) = 0;
  };

  virtual ~Dispatcher() = default;
  // Dropped while detached: OnAttached is the moment to submit again.
  virtual void Submit(std::vector<v1::Work> work) = 0;
  virtual void CancelWork(const v1::CancelWork& cancel) = 0;
  virtual void Acknowledge(const v1::CommitAck& ack) = 0;
  // Ends the stream and opens a new one: the tracker then sends every result
  // again that was not acknowledged. What was handed over before still goes
  // out.
  virtual void Reattach() = 0;
  virtual void OfferCanaries(const v1::Canaries& canaries) = 0;
  // A FleetChange is missing: all devices are wanted again.
  virtual void AskFleet() = 0;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_JOB_DISPATCHER_H_
