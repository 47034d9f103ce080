regatta_test(device_agent_loop_test
  loop/agent_build_test.cc
  loop/agent_loop_test.cc
  loop/agent_reconnect_test.cc
  loop/agent_results_test.cc
  loop/agent_setup_test.cc
  loop/agent_stats_test.cc
  loop/agent_simulation_test.cc
  loop/spool_test.cc
  loop/tracker_client_test.cc
  probe/background_probe_test.cc
  probe/cache_levels_test.cc
  probe/cpu_probe_test.cc
  probe/emulator_test.cc
  probe/machine_test.cc
  devices_test.cc
  LIBS regatta_agent_devices regatta_agent_loop regatta_agent_client
       regatta_agent_probe)
