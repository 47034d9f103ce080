regatta_test(device_agent_loop_test
  loop/agent_loop_test.cc
  loop/agent_simulation_test.cc
  loop/spool_test.cc
  loop/tracker_client_test.cc
  LIBS regatta_agent_loop regatta_agent_client)
