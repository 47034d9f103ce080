// The tracker's numbers. Durations count on the tracker's own steady clock.
#ifndef REGATTA_TRACKER_TRACKER_OPTIONS_H_
#define REGATTA_TRACKER_TRACKER_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tracker/config/fleet_config.h"

namespace regatta {

struct TrackerOptions {
  // Who needs no approval, what boards come with, where events go.
  FleetConfig fleet;
  // What agents are told: how often to send a heartbeat, and how long an
  // assignment stays theirs after each HeartbeatAck.
  absl::Duration heartbeat = absl::Seconds(10);
  absl::Duration lease = absl::Seconds(60);
  // An Assign without an AssignmentReply for this long is requeued.
  absl::Duration accept = absl::Seconds(5);
  // Silence after which an agent is suspect, and lost. Announced quiet time
  // (at most quiet_max) is added.
  absl::Duration suspect = absl::Seconds(30);
  absl::Duration lost = absl::Seconds(60);
  absl::Duration quiet_max = absl::Seconds(30);
  // The session of an agent that does not read what it is sent for this long is
  // cut off.
  absl::Duration unread = absl::Seconds(30);
  // A session without a Hello for this long is closed.
  absl::Duration hello = absl::Seconds(10);
  // An agent that holds work and whose heartbeats go on while its work loop
  // stands still for this long gets no renewals and no work. Must be longer
  // than the longest step of a trial: a reference's build, a slow kernel's run.
  absl::Duration stuck = absl::Minutes(10);
  // After a start, work is held back for at most this long while agents that
  // held leases have not reported.
  absl::Duration restart_window = absl::Seconds(90);
  // What an agent holds that this tracker does not know stays its own until a
  // server had this long to ask for it.
  absl::Duration orphan_grace = absl::Seconds(5);
  // A lease that a Hello does not list ends after this long instead of at once
  // when the agent says that results wait in its spool.
  absl::Duration spool_grace = absl::Seconds(2);
  // A device that refused or gave back work, or let it lie, gets none for this
  // long.
  absl::Duration cool_down = absl::Seconds(1);
  // Queued work of a server that has been away for this long is dropped, and so
  // are its results, which the agents keep; the server submits again what it
  // still wants.
  absl::Duration server_away = absl::Hours(1);
  // So long cancelled work that an agent had begun waits for results that are
  // under way: at most, and after the agent said that it stopped.
  absl::Duration cancel_grace = absl::Seconds(5);
  absl::Duration cancel_answered_grace = absl::Seconds(1);
  // An agent that announced its return is not lost for so long, at most.
  absl::Duration longest_reboot = absl::Seconds(300);
  // So long a device counts as busy with work that was taken from it, unless
  // its agent says before that it has stopped.
  absl::Duration confirm_stop = absl::Seconds(5);
  // A canary comes after so long, or so many trials, whichever is first. A
  // round that takes longer than the limit has failed; one that failed is
  // repeated after the retry time.
  absl::Duration canary_interval = absl::Minutes(30);
  int64_t canary_trials = 500;
  absl::Duration canary_limit = absl::Seconds(120);
  absl::Duration canary_retry = absl::Seconds(2);
  // Boards not seen for this long are forgotten.
  absl::Duration forget_agent = absl::Hours(24 * 30);
  // How often Tick is called, and the lateness from which a tick counts as a
  // stall of this process: every deadline is then moved by the stall.
  absl::Duration tick = absl::Milliseconds(500);
  absl::Duration stall = absl::Seconds(2);
  // The least time between two WaitReports, and between two FleetChanges.
  absl::Duration wait_report_interval = absl::Seconds(1);
  absl::Duration fleet_change_interval = absl::Milliseconds(200);

  int max_attempts = 3;
  // Work that may be queued or running for one server.
  int64_t max_work_per_server = 200'000;
  // Results that wait for a server's commit. From 80 % of either bound on,
  // boards get no new work; at the bound results are left to the agents'
  // spools.
  int64_t max_buffered_results = 50'000;
  int64_t max_buffered_bytes = int64_t{64} << 20;
  // Sessions at once, and those among them without a Hello, in all and with one
  // certificate.
  int64_t max_sessions = 20'000;
  int64_t max_unnamed_sessions = 2'000;
  int64_t max_unnamed_sessions_per_agent = 16;
  // An agent's messages are read no faster than this on average, with twice as
  // much at once.
  double messages_per_second = 500;
  double bytes_per_second = 8 << 20;
  // An agent that sends so many results for trials that it does not hold within
  // a minute is not let in for `barred`. Where agents have certificates.
  int max_not_owner_per_minute = 10;
  // Two processes that take the name of one agent by turns more often than this
  // in ten minutes: its devices are quarantined, and its certificate, where it
  // has one, is barred as above.
  int max_takeovers = 5;
  absl::Duration barred = absl::Minutes(10);
  // Of one message from an agent.
  int64_t max_message_bytes = int64_t{1} << 20;
};

// InvalidArgument names the option that contradicts another one.
absl::Status Validate(const TrackerOptions& options);

}  // namespace regatta

#endif  // REGATTA_TRACKER_TRACKER_OPTIONS_H_
