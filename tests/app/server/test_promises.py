"""Each sentence of SECURITY.md has tests that hold it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ADVICE = ()
"""In place of tests: what the reader is asked to do, or told that the lab does not do."""
PROMISES = {
    "Input is data and never code": ("test_ruff_check", "test_what_would_explode_is_refused_in_time"),
    "Ruff checks this": ("test_ruff_check",),
    "The page shows input as text": (
        "test_the_recipe_workbench",
        "test_a_bad_link_says_so_and_the_page_runs",
        "test_files_are_refused_with_a_sentence_or_run",
    ),
    "An experiment from a link or a file": (
        "test_arbitrary_links_never_raise_and_never_change_the_sampler_in_silence",
    ),
    "Its length is limited before": (
        "test_a_link_that_is_too_long_is_not_taken_apart",
        "test_the_reading_of_a_link_is_bounded",
        "test_draws_of_a_run_too_long_for_the_page_are_refused_with_advice",
    ),
    "All formulas of a typed posterior": ("test_the_worst_are_bounded", "test_one_bound_holds_for_all_of_a_model"),
    "`python -m tests.hostile_models` reads": ("test_hostile_models_are_refused_in_a_sentence_or_read_soon",),
    "A lesson file is checked in the same way": (
        "test_no_file_of_the_lessons_executes_data",
        "test_broken_files_stop_no_others",
        "test_a_broken_file_is_reported_with_its_line_and_stops_no_other",
    ),
    "Links lead to web pages only": ("test_a_formula_is_of_signs_alone", "test_a_text_has_links_to_web_pages_alone"),
    "The rendered result is checked": ("test_what_is_made_of_a_text_is_looked_at", "test_a_link_in_a_formula_is_seen"),
    "Handouts and live pages have": (
        "test_every_writer_of_a_page_gives_it_a_policy",
        "test_a_handout_runs_its_own_scripts_and_no_other",
    ),
    "An uploaded corpus, graph or table": ("test_a_file_in_many_small_chunks_costs_what_a_file_costs",),
    "Browser and server both refuse": (
        "test_what_the_browser_refuses_is_told",
        "test_the_server_itself_refuses_what_is_too_large",
        "test_entities_are_refused_before_they_are_read",
    ),
    "The server keeps the upload in memory": (
        "test_an_upload_is_read_once_and_in_another_way_where_a_choice_is_changed",
        "test_a_table_of_ones_own_is_run_and_offered_and_goes_with_the_page",
        "test_the_data_of_a_session_end_with_it_and_no_other_session_sees_them",
    ),
    "All pages of one address hold": ("test_the_pages_of_an_address_hold_so_many_bytes_and_no_more",),
    "A share link holds the whole experiment": ("test_the_link_is_the_whole_state",),
    "Put nothing in it": ADVICE,
    "`panel serve app` listens on": ("test_without_a_class_only_this_computer_is_served",),
    "`sgmcmc-lab` and `panel serve app --address": ("test_without_a_class_only_this_computer_is_served",),
    "It answers to `localhost`": (
        "test_only_its_own_names_are_answered",
        "test_a_page_opens_under_each_name_of_this_computer",
    ),
    "A request under any other name": ("test_only_its_own_names_are_answered",),
    "This keeps other sites out": ("test_only_its_own_names_are_answered", "test_a_page_runs_its_own_scripts_only"),
    "It does not protect against": ADVICE,
    "To show it to a class": (
        "test_names_that_were_allowed",
        "test_without_a_class_only_this_computer_is_served",
    ),
    "Repeat the option for several addresses": ("test_names_that_were_allowed", "test_a_wildcard_allows_every_name"),
    "The variable `BOKEH_ALLOW_WS_ORIGIN`": ("test_a_refused_connection_has_its_sentence",),
    "If the server is open to the internet": ("test_nginx_encrypts_and_limits_the_connections_of_an_address",),
    "A proxy that changes the requested name": (
        "test_a_page_behind_a_proxy_runs_or_says_what_to_start_the_server_with",
        "test_a_refused_connection_has_its_sentence",
    ),
    "Another site may link to the lab": ("test_other_sites_cannot_make_the_server_work",),
    "To show the lab in a frame": (
        "test_a_site_that_was_named_shows_the_lab_in_a_frame",
        "test_nobody_shows_the_lab_in_a_frame_by_default",
    ),
    "Separate several names": ("test_an_embedding_site_is_an_origin",),
    "A browser may write only": (
        "test_a_write_is_known_by_component_and_property",
        "test_events_are_those_of_the_component",
        "test_no_value_of_a_property_that_may_be_written_is_an_error",
        "test_what_a_widget_has_may_be_written",
    ),
    "Anything else that a client sends": (
        "test_no_other_property_of_any_model_changes",
        "test_a_browser_reads_no_picture_of_the_server",
        "test_only_the_messages_of_a_page_are_taken",
    ),
    "Limits on a client's messages": (
        "test_a_value_is_plain_and_small",
        "test_a_message_has_a_bounded_number_of_events",
        "test_a_flood_of_messages_waits_its_turn",
        "test_a_large_body_is_refused_before_it_is_sent",
    ),
    "A malformed message closes": ("test_what_is_no_message_closes_the_connection_and_nothing_else",),
    "A component's script may send": ("test_a_component_sends_what_its_script_sends_and_nothing_else",),
    "An error that a page causes": (
        "test_an_error_in_what_is_deferred_is_charged_to_its_page_and_logged_once",
        "test_a_page_has_few_errors_in_the_log",
    ),
    "Of lines of one kind": (
        "test_many_lines_of_one_kind_are_few_and_counted",
        "test_an_address_has_so_many_lines_of_all_kinds",
        "test_nobody_silences_lines_about_another_address",
        "test_a_line_is_counted_for_whoever_asked",
        "test_the_server_limits_what_clients_cause",
    ),
    "Headers and a body must arrive": ("test_half_a_request_is_not_waited_for",),
    "One address may have 500 connections": (
        "test_the_oldest_that_waits_of_an_address_gives_way",
        "test_a_class_behind_one_address_is_served",
        "test_an_address_has_so_many_pages_open_and_no_more",
    ),
    "A proxy on the same computer": (
        "test_an_address_has_a_bound_and_a_proxy_on_this_computer_none",
        "test_a_room_of_two_processes_behind_nginx",
    ),
    "The proxy must also handle TLS": ("test_a_connection_with_tls_is_not_counted",),
    "New pages are made in parts": (
        "test_a_page_in_parts_is_the_page",
        "test_a_page_does_not_wait_for_all_parts_of_another_address",
    ),
    "Addresses take turns, so that": ("test_addresses_take_turns",),
    "Beside pages that move": ("test_open_pages_that_move_have_two_thirds_of_the_time",),
    "One address may have 200 pages": (
        "test_an_address_has_so_many_pages_waiting_and_no_more",
        "test_whoever_has_too_many_pages_waiting_reads_why",
    ),
    "A page that connects again": ("test_a_page_that_is_made_anew_has_its_turn",),
    "Addresses take turns in the threads": (
        "test_addresses_have_the_same_time_of_the_processor",
        "test_pages_have_the_same_time_of_the_processor",
    ),
    "One address has at most ten steps": (
        "test_an_address_has_few_pieces_of_work_at_a_time",
        "test_no_address_waits_for_the_exact_answers_of_another",
        "test_no_address_waits_for_the_files_of_another",
        "test_no_address_waits_for_the_runs_that_another_asked_for",
    ),
    "At most 50 of its searches": ("test_so_much_waits_for_an_address_and_no_more",),
    "A search for a page that has closed": ("test_answers_are_made_once_and_given_up_where_nobody_waits",),
    "Changes by one address": ("test_changes_by_one_address_leave_time_for_those_of_others",),
    "A session belongs to the page": ("test_a_session_has_one_connection",),
    "A link cannot name a session": ("test_a_link_names_no_session",),
    "The session's token is signed": ("test_a_token_is_the_servers_own", "test_the_administrators_key_is_respected"),
    "A short link or a room": ("test_a_forged_code_leads_nowhere", "test_links_and_rooms_die_after_a_day"),
    "There is no list of codes": ("test_a_forged_code_leads_nowhere",),
    "One address may have at most 25": (
        "test_what_is_not_used_gives_way",
        "test_short_links_that_nobody_opens_give_way",
    ),
    "When all rooms are taken": (
        "test_what_is_not_used_gives_way",
        "test_a_school_behind_one_address_has_its_rooms",
        "test_a_room_that_is_gone_is_opened_again_by_its_maker_alone",
    ),
    "Only the maker leads": ("test_only_the_maker_leads_asks_reveals_races_and_closes",),
    "The room's code is derived": ("test_a_room_that_is_gone_is_opened_again_by_its_maker_alone",),
    "A student is a random mark": ("test_each_of_three_hundred_answers_is_counted_once",),
    "A page counts as one student": (
        "test_a_page_is_one_student_whatever_it_sends",
        "test_a_student_does_nothing_that_is_the_makers",
        "test_a_page_opens_one_room",
        "test_a_page_opens_few_rooms_in_its_life",
    ),
    "Everything that a room shows": ("test_hostile_values_are_refused_as_in_links",),
    "Do not give Redis": ADVICE,
    "A student's live page has": ("test_a_students_socket_is_bounded", "test_a_flood_is_passed_over"),
    "Of several states": ("test_of_states_that_wait_the_last_one_is_sent",),
    "A room has at most 1,500": ("test_everything_is_bounded", "test_a_closed_page_makes_room_for_another_one"),
    "Live pages are made by one process": ("test_few_files_wait_to_be_made", "test_few_files_are_kept"),
    "A race's link is read": (
        "test_a_race_takes_a_link_and_measures_it",
        "test_so_many_samplers_wait_to_be_measured_and_no_more",
    ),
    "Only the sites of `SGMCMC_EMBED`": ("test_every_answer_has_the_headers",),
    "Every answer has": ("test_every_answer_has_the_headers",),
    "The policy allows scripts": ("test_a_page_runs_its_own_scripts_only",),
    "An error sends the client": (
        "test_an_error_tells_a_client_nothing_of_the_server",
        "test_a_page_that_cannot_be_made_says_so_and_nothing_of_the_server",
    ),
    "Control characters": ("test_controls_of_a_text_are_written_out",),
    "The app needs no network": ("test_the_network_is_watched",),
    "`python -m sgmcmc_lab.lessons all --cluster": ("test_a_cluster_by_its_address",),
    "Compiled functions are stored": (
        "test_the_check_says_what_is_compiled_and_where_it_is_kept",
        "test_where_the_cache_cannot_be_written_one_of_its_own_takes_its_place",
        "test_what_is_to_be_removed_at_the_end_is",
    ),
    "Anyone who can write there": ADVICE,
}
"""The first words of each sentence of the points of SECURITY.md, and the tests that hold it."""


def sentences():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    points = (" ".join(point.split()) for point in re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE))
    return [sentence for point in points for sentence in re.split(r"(?<=\.) (?=[A-Z`])", point)]


def test_every_promise_has_its_test():
    promised = sentences()
    assert not [
        (promise, start)
        for promise, start in zip(promised, PROMISES, strict=False)
        if start not in promise[: len(start)]
    ]
    assert len(promised) == len(PROMISES)
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    wanting = sorted({name for names in PROMISES.values() for name in names if f"def {name}(" not in code})
    assert not wanting
