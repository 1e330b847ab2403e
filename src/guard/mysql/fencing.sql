-- Fencing for MariaDB 10.6 and later, for clients in any language. Version 1. For InnoDB.
--
-- Apply this file to the database that has the guarded tables, with a client that knows `delimiter`, as often as you like: it
-- makes what is missing and renews the procedures, and refuses when a newer version is there. Tables that refuse what was not
-- advanced need protect.sql behind it:    cat fencing.sql protect.sql | mariadb app
-- Whoever applies it owns the procedures, and they run with the owner's rights: best not the application's account.
--
--   start transaction;
--   call fencing_advance('orders/eu', 1796000000000041, null, null);    -- the first statement; FT001 when stale
--   update stock set qty = qty - 1 where sku = 'a';
--   commit;
--
-- SQLSTATE of what it refuses: FT001 stale. FT002 write to a protected table without advance (protect.sql). FT003 the fence
-- belongs to another issuer. FT004 the equal token of another history. FT005 the token is too far ahead of the fence. FT006
-- advance outside of a transaction.

set @fencing_mode = @@session.sql_mode;
-- The procedures keep it, whatever the mode of their callers.
set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO';

create table if not exists fencing_settings (
  only_row tinyint not null default 1 primary key check (only_row = 1),
  version integer not null,
  -- How far one raise may go. Tokens of Fencepost are microseconds: 20 years, twice the farthest floor of a cluster.
  max_jump bigint not null default 631152000000000 check (max_jump > 0)
) engine = InnoDB;

-- The greatest token accepted in each domain; 0 where nobody has one yet. It outlives the data, so nothing here refers to it,
-- and nothing expires. Bytes (of UTF-8), because no collation may take two names for one.
create table if not exists fencing_fence (
  domain varbinary(255) not null primary key check (domain <> ''),
  token bigint not null check (token >= 0),
  issuer varbinary(512),
  incarnation varbinary(512),
  -- Changes with every use, so that a use is a write: replication with several primaries orders nothing else.
  writes bigint unsigned not null default 0,
  raised_at timestamp(6) not null default current_timestamp(6)
) engine = InnoDB;

-- What operators changed by hand.
create table if not exists fencing_history (
  id bigint unsigned not null auto_increment primary key,
  at timestamp(6) not null default current_timestamp(6),
  account varchar(255) not null,
  domain varbinary(255) not null,
  token_before bigint,
  token_after bigint,
  issuer_before varbinary(512),
  issuer_after varbinary(512),
  note text character set utf8mb4 not null
) engine = InnoDB;

-- The fences for people: in some clients bytes show as hexadecimal digits.
create or replace view fencing_fences as
  select convert(domain using utf8mb4) collate utf8mb4_nopad_bin as domain, token, convert(issuer using utf8mb4) as issuer,
    convert(incarnation using utf8mb4) as incarnation, raised_at
  from fencing_fence where token > 0;

delimiter //

drop procedure if exists fencing_install //
create procedure fencing_install()
begin
  if exists (select 1 from fencing_settings s where s.version > 1) then
    signal sqlstate '45000' set message_text = 'this database has a newer version of fencing: apply the newer file';
  end if;
  insert into fencing_settings (version) values (1) on duplicate key update version = 1;
end //
call fencing_install() //
drop procedure fencing_install //

-- Raises the fence of a domain to this token unless a greater one was accepted, and keeps it there until the transaction ends.
-- Says how that went instead of failing. `o_status`: applied, or stale, issuer, incarnation, jump. The others: the fence that
-- was found, token 0 when there was none. Issuer and incarnation that are not given (null) are not compared, and an issuer
-- that is stored stays.
--
-- The row is written first, which locks it, and then read: what was affected says nothing here, because it depends on how the
-- client connected.
create or replace procedure fencing_try_advance(
  p_domain varchar(255) character set utf8mb4, p_token bigint, p_issuer varchar(512) character set utf8mb4,
  p_incarnation varchar(512) character set utf8mb4,
  out o_status varchar(16), out o_token bigint, out o_issuer varbinary(512), out o_incarnation varbinary(512)
)
begin
  declare v_cap bigint;
  if p_domain is null or p_domain = '' or p_token is null or p_token < 1 then
    signal sqlstate '22023' set message_text = 'not a lease: domain must have 1 to 255 bytes, token must be 1 to 2^63 - 1';
  end if;
  insert into fencing_fence (domain, token) values (p_domain, 0) on duplicate key update writes = writes + 1;
  select f.token, f.issuer, f.incarnation into o_token, o_issuer, o_incarnation
    from fencing_fence f where f.domain = p_domain for update;
  select s.max_jump into v_cap from fencing_settings s lock in share mode;
  if v_cap is null then
    signal sqlstate '45000' set message_text = 'fencing_settings has lost its row: apply fencing.sql again';
  end if;

  if o_issuer <> p_issuer then
    set o_status = 'issuer';
  elseif o_token > p_token then
    set o_status = 'stale';
  elseif o_token = p_token and o_incarnation <> p_incarnation then
    set o_status = 'incarnation';
  elseif o_token > 0 and p_token - o_token > v_cap then
    set o_status = 'jump';
  else
    set o_status = 'applied';
    if o_token < p_token or o_issuer is null and p_issuer is not null
      or o_incarnation is null and p_incarnation is not null then
      update fencing_fence f set f.token = p_token, f.issuer = coalesce(p_issuer, f.issuer),
        f.incarnation = p_incarnation, f.raised_at = current_timestamp(6)
      where f.domain = p_domain;
    end if;
  end if;
end //

-- What has ended the transactions of this connection so far, as a count: while it stays, the transaction is the same. What
-- defines something ends one too, and does not count.
create or replace procedure fencing_count_ends(out o_ends varchar(64))
begin
  select concat(sum(s.variable_value), '/', @@session.autocommit) into o_ends from information_schema.session_status s
  where s.variable_name in ('COM_BEGIN', 'COM_COMMIT', 'COM_ROLLBACK', 'COM_XA_START', 'COM_XA_COMMIT', 'COM_XA_ROLLBACK');
end //

-- As fencing_try_advance, and fails unless applied. Has to be the first statement of its transaction: one that has read before
-- goes on reading what was true then. A first token can meet another one in a deadlock (1213): run the transaction again.
create or replace procedure fencing_advance(
  p_domain varchar(255) character set utf8mb4, p_token bigint, p_issuer varchar(512) character set utf8mb4,
  p_incarnation varchar(512) character set utf8mb4
)
begin
  declare v_status varchar(16);
  declare v_token bigint;
  declare v_issuer, v_incarnation varbinary(512);
  declare v_message text character set utf8mb4;
  declare v_ends varchar(64);
  if @@session.in_transaction = 0 and @@session.autocommit = 1 then
    signal sqlstate 'FT006' set message_text = 'call fencing_advance inside a transaction, as its first statement';
  end if;
  call fencing_try_advance(p_domain, p_token, p_issuer, p_incarnation, v_status, v_token, v_issuer, v_incarnation);
  if v_status = 'stale' then
    set v_message = left(concat('stale: token ', p_token, ', and ', v_token, ' was accepted before, of ', p_domain), 128);
    signal sqlstate 'FT001' set message_text = v_message;
  elseif v_status = 'issuer' then
    set v_message = left(concat('the fence belongs to ', convert(v_issuer using utf8mb4), ', of ', p_domain), 128);
    signal sqlstate 'FT003' set message_text = v_message;
  elseif v_status = 'incarnation' then
    set v_message = left(concat('token ', p_token, ' was accepted of another history, of ', p_domain), 128);
    signal sqlstate 'FT004' set message_text = v_message;
  elseif v_status = 'jump' then
    set v_message = left(concat('token ', p_token, ' is too far ahead of ', v_token, ', of ', p_domain), 128);
    signal sqlstate 'FT005' set message_text = v_message;
  end if;
  -- For protected tables. A variable outlives its transaction, so it names it.
  call fencing_count_ends(v_ends);
  if not @fencing_claimed_in <=> v_ends then
    set @fencing_claims = '{}', @fencing_claimed_in = v_ends;
  end if;
  set @fencing_claims = json_set(@fencing_claims, concat('$."', p_domain, '"'), cast(p_token as char)),
    @fencing_judged = null;
end //

-- Keeps successors out for at most `p_ms` milliseconds (1 500 or more), whatever becomes of the client: the server ends a
-- connection that idles within a transaction for a third of it (in whole seconds, one at least), and a statement that takes
-- half of the rest; `o_work_ms` is what is left for the client's own work. Limits that are lower already stay. For this
-- connection, from its next statement on.
create or replace procedure fencing_limit_transaction(p_ms integer, out o_work_ms integer)
begin
  declare v_idle integer default greatest(floor(p_ms / 3000), 1);
  if p_ms is null or p_ms < 1500 then
    signal sqlstate '22023' set message_text = 'fencing_limit_transaction: at least 1500 milliseconds';
  end if;
  set o_work_ms = floor((p_ms - 1000 * v_idle) / 2);
  set session
    idle_transaction_timeout = if(@@session.idle_transaction_timeout between 1 and v_idle, @@session.idle_transaction_timeout, v_idle),
    -- These two go before the first where they are set.
    idle_write_transaction_timeout = if(@@session.idle_write_transaction_timeout between 1 and v_idle,
      @@session.idle_write_transaction_timeout, v_idle),
    idle_readonly_transaction_timeout = if(@@session.idle_readonly_transaction_timeout between 1 and v_idle,
      @@session.idle_readonly_transaction_timeout, v_idle),
    max_statement_time = if(@@session.max_statement_time > 0 and @@session.max_statement_time < o_work_ms / 1000,
      @@session.max_statement_time, o_work_ms / 1000);
end //

-- All that begins a guarded transaction, for clients that end it by fencing_leave: begins it, waits for the fences up to `p_ms`,
-- advances, limits the transaction to `p_ms`. `p_leases`: a JSON list of objects with domain, token (as text), issuer and
-- incarnation, each of another domain, in the order in which everybody locks them; while it waits for one of them, the time of
-- those before it runs. Gives one row, names in it as hexadecimal digits, because connections have character sets; unless its status is `applied` the transaction is over already.
--
-- Transactions under the equal token run side by side: they share a lock that a raise takes for itself. InnoDB hands it out in
-- the order of asking, so a stream of stale holders cannot keep their successor out. Where several servers take
-- writes (Galera), a lock is no more than local: there each writes the row.
create or replace procedure fencing_enter(
  p_ms integer, p_isolation varchar(20), p_leases longtext character set utf8mb4
)
begin
  declare v_count integer default json_length(p_leases);
  declare v_at integer default 0;
  declare v_domain varchar(255) character set utf8mb4;
  declare v_token, v_fence bigint;
  declare v_issuer, v_incarnation varchar(512) character set utf8mb4;
  declare v_fence_issuer, v_fence_incarnation, v_earlier varbinary(512);
  declare v_status varchar(16);
  declare v_shared boolean default false;
  declare v_work integer;
  declare v_left integer default p_ms;
  declare v_stood datetime(6);

  -- What somebody left behind in this connection is not ours to commit.
  rollback and no chain no release;
  set @fencing_autocommit = @@session.autocommit,
    @fencing_lock_wait = @@session.innodb_lock_wait_timeout,
    @fencing_idle = @@session.idle_transaction_timeout,
    @fencing_idle_write = @@session.idle_write_transaction_timeout,
    @fencing_idle_readonly = @@session.idle_readonly_transaction_timeout,
    @fencing_statement = @@session.max_statement_time,
    -- Until fencing_leave.
    @fencing_claims = '{}', @fencing_claimed_in = 'fencing_enter', @fencing_judged = null;
  -- A deadlock ends the transaction, and so does a statement that defines something: what follows would commit at once, behind
  -- no fence. Now it stays open, and fencing_leave rolls it back.
  set session autocommit = 0;
  set session innodb_lock_wait_timeout = least(@@session.innodb_lock_wait_timeout, ceil(p_ms / 1000));
  if @fencing_local is null then
    -- In a variable, because asking takes longer than all the rest.
    select count(*) = 0 into @fencing_local from information_schema.global_variables g
      where g.variable_name = 'WSREP_ON' and g.variable_value = 'ON';
  end if;

  -- In a transaction of its own: only to know which lock to take, that what is stale need not wait, and that rows are there.
  -- Two that lock a row that is not there wait for each other when they insert it. Never a raise that may be taken back: the
  -- session's own level may be one that reads it.
  set transaction isolation level read committed;
  while v_at < v_count and v_status is null do
    set v_domain = json_unquote(json_extract(p_leases, concat('$[', v_at, '].domain'))),
      v_token = cast(json_unquote(json_extract(p_leases, concat('$[', v_at, '].token'))) as signed),
      v_issuer = json_unquote(json_extract(p_leases, concat('$[', v_at, '].issuer'))),
      v_incarnation = json_unquote(json_extract(p_leases, concat('$[', v_at, '].incarnation'))),
      v_fence = null, v_fence_issuer = null, v_fence_incarnation = null;
    select f.token, f.issuer, f.incarnation into v_fence, v_fence_issuer, v_fence_incarnation
      from fencing_fence f where f.domain = v_domain;
    if v_fence is null then
      insert ignore into fencing_fence (domain, token) values (v_domain, 0);
      commit and no chain no release;
      set transaction isolation level read committed;
    elseif v_fence > v_token and coalesce(v_fence_issuer, v_issuer) <=> v_issuer then
      set v_status = 'stale';
    end if;
    set v_at = v_at + 1;
  end while;
  set v_shared = v_count = 1 and @fencing_local
    and v_fence <=> v_token and v_fence_issuer <=> v_issuer and v_fence_incarnation <=> v_incarnation;
  commit and no chain no release;

  if p_isolation = 'serializable' then set transaction isolation level serializable;
  elseif p_isolation = 'read committed' then set transaction isolation level read committed;
  else set transaction isolation level repeatable read;
  end if;
  start transaction;
  -- Gone if the transaction ends before fencing_leave.
  savepoint fencing_guard;
  if v_shared and v_status is null then
    select f.token, f.issuer, f.incarnation into v_fence, v_fence_issuer, v_fence_incarnation
      from fencing_fence f where f.domain = v_domain lock in share mode;
    if v_fence = v_token and v_fence_issuer <=> v_issuer and v_fence_incarnation <=> v_incarnation then
      set v_status = 'applied', @fencing_claims = json_object(v_domain, cast(v_token as char));
    end if;
  end if;
  if v_status is null then
    set v_at = 0, v_status = 'applied';
    while v_at < v_count and v_status = 'applied' do
      set v_domain = json_unquote(json_extract(p_leases, concat('$[', v_at, '].domain'))),
        v_token = cast(json_unquote(json_extract(p_leases, concat('$[', v_at, '].token'))) as signed),
        v_issuer = json_unquote(json_extract(p_leases, concat('$[', v_at, '].issuer'))),
        v_incarnation = json_unquote(json_extract(p_leases, concat('$[', v_at, '].incarnation')));
      call fencing_try_advance(v_domain, v_token, v_issuer, v_incarnation, v_status, v_fence, v_fence_issuer,
        v_fence_incarnation);
      set @fencing_claims = json_set(@fencing_claims, concat('$."', v_domain, '"'), cast(v_token as char));
      if v_earlier is null and v_status = 'applied' and v_fence_incarnation <> v_incarnation then
        set v_earlier = v_fence_incarnation;
      end if;
      set v_at = v_at + 1;
      if v_count > 1 and v_status = 'applied' then
        set v_stood = coalesce(v_stood, sysdate(6)),
          v_left = least(p_ms, p_ms - timestampdiff(microsecond, v_stood, sysdate(6)) div 1000);
        if v_left < 1500 then
          signal sqlstate 'HY000' set mysql_errno = 1205, message_text = 'fencing_enter: not all fences were free in time';
        end if;
        set session innodb_lock_wait_timeout = least(@@session.innodb_lock_wait_timeout, greatest((v_left - 1500) div 1000, 1));
      end if;
    end while;
  end if;

  if v_status = 'applied' then
    call fencing_limit_transaction(v_left, v_work);
  else
    call fencing_leave(false);
  end if;
  select v_status as status, v_at - 1 as at, cast(v_fence as char) as fence, hex(v_fence_issuer) as issuer,
    hex(v_fence_incarnation) as incarnation, hex(v_earlier) as earlier, v_work as work_ms;
end //

-- Ends what fencing_enter began, and gives the connection the settings that it had. Fails with 1305 (no such savepoint) when
-- the transaction of the guard is over already, because a statement in it had ended it: nothing that came later is kept then.
create or replace procedure fencing_leave(p_commit boolean)
begin
  if p_commit then
    release savepoint fencing_guard;
    commit and no chain no release;
  else
    rollback and no chain no release;
  end if;
  set session autocommit = @fencing_autocommit,
    innodb_lock_wait_timeout = @fencing_lock_wait,
    idle_transaction_timeout = @fencing_idle,
    idle_write_transaction_timeout = @fencing_idle_write,
    idle_readonly_transaction_timeout = @fencing_idle_readonly,
    max_statement_time = @fencing_statement;
  set @fencing_claims = null, @fencing_claimed_in = null, @fencing_judged = null;
end //

-- The fence of a domain, names as hexadecimal digits; no row when nobody has advanced it.
create or replace procedure fencing_show(p_domain varchar(255) character set utf8mb4)
begin
  select cast(f.token as char) as token, hex(f.issuer) as issuer, hex(f.incarnation) as incarnation
  from fencing_fence f where f.domain = p_domain and f.token > 0;
end //

-- For operators: sets the fence, upward or downward, for example below a token that nobody was ever granted. Whoever held a
-- greater token writes again when it is set below. The note says why. Gives one row, `token_before`: null when there was no
-- fence. A transaction of its own.
create or replace procedure fencing_reset(
  p_domain varchar(255) character set utf8mb4, p_token bigint, p_note text character set utf8mb4,
  p_issuer varchar(512) character set utf8mb4, p_incarnation varchar(512) character set utf8mb4
)
begin
  declare v_token bigint;
  declare v_issuer varbinary(512);
  declare exit handler for sqlexception begin rollback; resignal; end;
  if p_domain is null or p_domain = '' or p_token is null or p_token < 1 or coalesce(trim(p_note), '') = '' then
    signal sqlstate '22023' set message_text = 'fencing_reset: token must be 1 to 2^63 - 1, and the note must say why';
  end if;
  start transaction;
  insert into fencing_fence (domain, token) values (p_domain, 0) on duplicate key update writes = writes + 1;
  select f.token, f.issuer into v_token, v_issuer from fencing_fence f where f.domain = p_domain for update;
  update fencing_fence f set f.token = p_token, f.issuer = coalesce(p_issuer, f.issuer), f.incarnation = p_incarnation,
    f.raised_at = current_timestamp(6) where f.domain = p_domain;
  insert into fencing_history (account, domain, token_before, token_after, issuer_before, issuer_after, note)
    values (session_user(), p_domain, nullif(v_token, 0), p_token, v_issuer, coalesce(p_issuer, v_issuer), p_note);
  commit;
  select cast(nullif(v_token, 0) as char) as token_before;
end //

-- For operators: from now on the fence takes tokens of this issuer (`fencepost:` and the name of the cluster) and no others.
-- It stays where it is, so the new tokens have to be greater. Gives one row, `done`: 0 when there is no fence. A transaction of
-- its own.
create or replace procedure fencing_allow_issuer(
  p_domain varchar(255) character set utf8mb4, p_issuer varchar(512) character set utf8mb4, p_note text character set utf8mb4
)
begin
  declare v_token bigint;
  declare v_issuer varbinary(512);
  declare exit handler for sqlexception begin rollback; resignal; end;
  if coalesce(p_issuer, '') = '' or coalesce(trim(p_note), '') = '' then
    signal sqlstate '22023' set message_text = 'fencing_allow_issuer: issuer must not be empty, and the note must say why';
  end if;
  start transaction;
  select f.token, f.issuer into v_token, v_issuer from fencing_fence f where f.domain = p_domain and f.token > 0 for update;
  if v_token is not null then
    update fencing_fence f set f.issuer = p_issuer, f.writes = f.writes + 1 where f.domain = p_domain;
    insert into fencing_history (account, domain, token_before, token_after, issuer_before, issuer_after, note)
      values (session_user(), p_domain, v_token, v_token, v_issuer, p_issuer, p_note);
  end if;
  commit;
  select v_token is not null as done;
end //

delimiter ;

set session sql_mode = @fencing_mode;

-- Give an application what it needs:
--   grant execute on procedure app.fencing_enter to app;    and fencing_leave, fencing_advance, fencing_show
-- fencing_limit_transaction where it calls that itself. Reset, allow_issuer and the tables stay with the owner.
